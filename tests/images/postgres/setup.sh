#!/bin/sh
# Makes the data directory while the image is built, so that a container starts at once.
# PostgreSQL's own defaults hold, not those of the cluster that Debian's package made.
set -eu

pg_dropcluster 15 main
install -d -o postgres /data /run/postgresql
su postgres <<'AS_POSTGRES'
set -eu
PATH=/usr/lib/postgresql/15/bin:$PATH
initdb -D /data --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256
printf 'host %s all all scram-sha-256\n' all replication >>/data/pg_hba.conf
postgres --single -D /data -c exit_on_error=on postgres <<'END'
CREATE ROLE treeline LOGIN CREATEDB PASSWORD 'treeline'
CREATE DATABASE treeline OWNER treeline
CREATE ROLE replicator LOGIN REPLICATION PASSWORD 'replicator'
END
AS_POSTGRES

pooler() {
    cat >"/etc/pgbouncer/$1.ini" <<END
[databases]
* = host=127.0.0.1 port=5432 user=treeline password=treeline
[pgbouncer]
listen_addr = 0.0.0.0
listen_port = $2
auth_type = any
pool_mode = $1
max_client_conn = 400
ignore_startup_parameters = extra_float_digits
unix_socket_dir =
pidfile = /run/postgresql/pgbouncer-$1.pid
END
    chown postgres "/etc/pgbouncer/$1.ini"
}
chmod 755 /etc/pgbouncer
pooler session 6432
pooler transaction 6433
