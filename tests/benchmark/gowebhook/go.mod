// What the conversion benchmark holds crdkeeper's webhook against. The standard library alone: nothing is downloaded.
module crdkeeper.dev/benchmark/gowebhook

go 1.26
