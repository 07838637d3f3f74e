// The distance between clients and API server in the migration benchmark. The standard library alone: nothing is downloaded.
module crdkeeper.dev/benchmark/godelay

go 1.26
