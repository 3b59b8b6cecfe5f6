#!/bin/bash
# make.sh NAME:TAG OUT.tar [CMD-JSON]: a docker-archive image of busybox-static and nothing else, the same bytes each time.
set -euo pipefail
ref=$1 out=$2 cmd=${3:-'["/bin/sh"]'}
case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

root=$work/root
mkdir -p "$root"/{bin,tmp,etc,proc,sys,dev,root,var/run}
chmod 1777 "$root/tmp"
cp /bin/busybox "$root/bin/busybox"
for applet in $(/bin/busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" .

layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
cat >"$work/config.json" <<END
{"architecture":"$arch","os":"linux","config":{"Env":["PATH=/bin"],"Cmd":$cmd},"rootfs":{"type":"layers","diff_ids":["sha256:$layer"]}}
END
echo "[{\"Config\":\"config.json\",\"RepoTags\":[\"$ref\"],\"Layers\":[\"layer.tar\"]}]" >"$work/manifest.json"
tar -C "$work" -cf "$out" manifest.json config.json layer.tar
