// The language's words are Rust's, and so are the colours.
document.querySelectorAll("code.language-coll").forEach((block) => {
  block.innerHTML = hljs.highlight("rust", block.textContent).value;
});
