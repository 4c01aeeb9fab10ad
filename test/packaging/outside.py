# SPDX-License-Identifier: GPL-2.0-or-later
"""What a fresh machine finds behind its access link: a name server that resolves every name, pages, Debian's archive,
and ours over HTTPS. All listen on one address of a host of the trial's fabric. Only what is asked of Debian's archive
is fetched: from the one that this machine's apt uses, through this machine's network."""
import functools
import http.server
import shutil
import ssl
import subprocess
import threading
import urllib.error
import urllib.request

#: TEST-NET-3.
ADDRESS = '203.0.113.1'
#: The name of docs/user/install.md.
OURS = 'packages.example'
#: The names in the sources.list of a fresh machine.
DEBIAN, SECURITY = 'deb.debian.org', 'security.debian.org'
#: Fields of a request that decide what the archive answers.
ASKED = 'If-Modified-Since', 'If-Range', 'Range'
#: Fields of its answer that apt needs.
ANSWERED = 'Content-Length', 'Content-Range', 'Content-Type', 'Last-Modified'


class Pages(http.server.SimpleHTTPRequestHandler):
    """Of every host: /N has N bytes, any other path a short page. Host OURS serves a directory."""
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        host = self.headers.get('Host', '').partition(':')[0]
        if host == OURS:
            super().do_GET()
        elif host in self.server.archives:
            self._relay(self.server.archives[host])
        else:
            size = self.path.strip('/')
            self._answer(b'\0' * min(int(size), 10**8) if size.isdigit() else b'It works.\n')

    def _answer(self, body):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _relay(self, archive):
        """Answers as a mirror of Debian does. archive: the URL of the one that is asked, in place of the first part of
        the path."""
        fields = {name: self.headers[name] for name in ASKED if name in self.headers}
        url = archive.rstrip('/') + '/' + self.path.lstrip('/').partition('/')[2]
        try:
            answer = self.server.opener.open(urllib.request.Request(url, headers=fields), timeout=60)
        except urllib.error.HTTPError as refused:
            answer = refused
        with answer:
            self.send_response(answer.status)
            for name in ANSWERED:
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            if 'Content-Length' not in answer.headers:
                self.send_header('Content-Length', '0')
            self.end_headers()
            shutil.copyfileobj(answer, self.wfile)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """archives: {host: URL of its archive}."""

    def __init__(self, port, directory, archives):
        self.archives = archives
        said = subprocess.run(['apt-config', 'shell', 'proxy', 'Acquire::http::Proxy'], capture_output=True, text=True,
                              check=True).stdout
        proxy = said.partition("'")[2].rpartition("'")[0]
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({'http': proxy} if proxy else {}))
        super().__init__((ADDRESS, port), functools.partial(Pages, directory=directory))


def serve(host, directory, certificate, archives):
    """Starts all servers on a host, which has ADDRESS. directory: what OURS serves. certificate: a file with key and
    certificate of OURS. They end with this process, and the name server with the host."""
    with host.inside():
        servers = [Server(port, directory, archives) for port in (80, 443)]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    # The handshake takes place in the thread of the connection.
    servers[1].socket = context.wrap_socket(servers[1].socket, server_side=True, do_handshake_on_connect=False)
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    host.popen(['dnsmasq', '--keep-in-foreground', '--conf-file=/dev/null', '--no-resolv', '--no-hosts', '--pid-file=',
                '--user=nobody', f'--listen-address={ADDRESS}', '--bind-interfaces', f'--address=/#/{ADDRESS}'])
