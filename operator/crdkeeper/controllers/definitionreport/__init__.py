"""The controller of DefinitionReports, and the probes of live CRDs that reports depend on."""
