"""The tasks: one module for each problem set, which registers its tasks when registry.get() imports it."""
