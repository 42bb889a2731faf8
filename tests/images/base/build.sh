#!/bin/sh
# Makes the image that all others stand on from Debian's packages alone: build.sh TAG
# It is a script and no Dockerfile, because without a registry there is nothing to put after FROM.
set -eu

root=$(mktemp -d /var/tmp/treeline-base.XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT

debootstrap --variant=minbase bookworm "$root"

# Installing a server must not start it: an image has no init system, and its data is made later.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
# Nobody reads manuals in a test container, and nobody needs a package's archive once it is unpacked.
cat >"$root/etc/dpkg/dpkg.cfg.d/slim" <<'END'
force-unsafe-io
path-exclude /usr/share/doc/*
path-exclude /usr/share/man/*
path-exclude /usr/share/locale/*
END
cat >"$root/etc/apt/apt.conf.d/slim" <<'END'
APT::Install-Recommends "false";
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
END

tar -C "$root" -c \
    --exclude='./dev/*' --exclude='./proc/*' \
    --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' \
    . | docker import --change 'ENV DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8' --change 'CMD ["sh"]' - "$1"
