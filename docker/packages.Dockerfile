# SPDX-License-Identifier: GPL-2.0-or-later
# A Debian with systemd for test/docker/test_packages.py. It has no network there: what apt is asked for is in its cache.
# The context is the archive that scripts/make-packages builds.
ARG SUITE
FROM debian:${SUITE}-slim
# The published image keeps neither what apt fetches nor documentation.
RUN rm -f /etc/apt/apt.conf.d/docker-clean /etc/dpkg/dpkg.cfg.d/slim /etc/dpkg/dpkg.cfg.d/docker && \
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        curl iproute2 iptables libcap2-bin openssl procps python3 systemd systemd-sysv && \
    for package in squid squid-openssl "gcc libc6-dev make pkgconf" apparmor; do \
        apt-get install -y -q --no-install-recommends --download-only $package || exit; done
ARG SUITE
COPY dists/${SUITE} /repository/dists/${SUITE}
COPY pool/${SUITE} /repository/pool/${SUITE}
COPY msfrs.asc /etc/apt/keyrings/
RUN echo "deb [signed-by=/etc/apt/keyrings/msfrs.asc] file:/repository ${SUITE} main" \
        >/etc/apt/sources.list.d/msfrs.list && \
    apt-get update -q && apt-get install -y -q --no-install-recommends --download-only \
        $(sed -n 's/^Package: //p' /repository/dists/${SUITE}/main/binary-*/Packages)
ENTRYPOINT ["/lib/systemd/systemd", "--log-target=console", "--show-status=no"]
