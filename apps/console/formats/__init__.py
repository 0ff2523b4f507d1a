"""How dates look (settings: `FORMAT_MODULE_PATH`)."""
