#!/bin/sh
# Runs the server as process 1; arguments are the server's own, such as `-c max_connections=300`.
# It is ready at the log line "database system is ready to accept connections".
set -eu

if [ "${TREELINE_FAST:-}" = 1 ]; then
    set -- -c fsync=off -c synchronous_commit=off -c full_page_writes=off "$@"
fi
# A container that was killed leaves them behind, with a number that somebody else may have now.
rm -f /run/postgresql/pgbouncer-*.pid
for mode in session transaction; do
    setpriv --reuid=postgres --regid=postgres --init-groups pgbouncer --daemon --quiet "/etc/pgbouncer/$mode.ini"
done
exec setpriv --reuid=postgres --regid=postgres --init-groups \
    /usr/lib/postgresql/15/bin/postgres -D /data -c listen_addresses='*' "$@"
