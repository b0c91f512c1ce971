((rust_code) @injection.content
  (#set! injection.language "rust"))
