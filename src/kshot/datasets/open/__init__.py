"""The open benchmark: picture sets that anyone can rebuild from package registries without an account."""
