"""The paper's own numbers, how each is computed from records and probes, and what a re-run says beside them."""
