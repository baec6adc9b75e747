"""The feature store and the catalog of datasets, backbones and prompt tiers."""
