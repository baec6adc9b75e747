"""Studies become cells, cells become records."""
