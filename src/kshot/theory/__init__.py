"""The paper's results as functions: closed forms here, measurements on features in `probes`."""
