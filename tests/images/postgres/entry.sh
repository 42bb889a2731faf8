#!/bin/sh
# Runs the server as process 1; arguments are the server's own, such as `-c max_connections=300`.
# It is ready at the log line "database system is ready to accept connections".
set -eu

as_postgres() {
    setpriv --reuid=postgres --regid=postgres --init-groups "$@"
}

if [ "${TREELINE_FAST:-}" = 1 ]; then
    set -- -c fsync=off -c synchronous_commit=off -c full_page_writes=off "$@"
fi
# Told where a primary is, it copies that and follows it, the first time; later it is what it has become.
if [ -n "${TREELINE_PRIMARY:-}" ] && [ ! -e /data/copied ]; then
    rm -rf /data/*
    # The primary may still be on its way up.
    until as_postgres env PGPASSWORD=replicator PGCONNECT_TIMEOUT=5 pg_basebackup \
        --host="$TREELINE_PRIMARY" --username=replicator --pgdata=/data --write-recovery-conf --checkpoint=fast; do
        sleep 0.2
        rm -rf /data/*
    done
    as_postgres touch /data/copied
fi
# A container that was killed leaves them behind, with a number that somebody else may have now.
rm -f /run/postgresql/pgbouncer-*.pid
for mode in session transaction; do
    as_postgres pgbouncer --daemon --quiet "/etc/pgbouncer/$mode.ini"
done
exec setpriv --reuid=postgres --regid=postgres --init-groups \
    /usr/lib/postgresql/15/bin/postgres -D /data -c listen_addresses='*' "$@"
