// Colors of `.coll` programs in the book: mdBook's highlighter does not know the language. The words are those of
// core/src/syntax/token.rs; a test of the book holds this file to them.
hljs.registerLanguage("coll", (hljs) => {
  // A name behind a word that is a keyword only where a statement begins.
  const named = "\\b(?=\\s+(?!in\\b|for\\b|if\\b|else\\b|let\\b)[A-Za-z_])";
  const word = (words, where) => ({ className: "keyword", begin: `\\b(?:${words})${where}`, relevance: 0 });
  return {
    keywords: {
      keyword: "algorithm as else for if in let pub",
      literal: "true false",
      type: "Groups Rank Ring Rings Topology Tree Trees bool int region",
      built_in:
        "AllGather AllReduce AllToAll Broadcast Gather Reduce ReduceScatter Scatter " +
        "copy reduce send recv recv_copy_send recv_reduce recv_reduce_copy recv_reduce_copy_send recv_reduce_send " +
        "TxAck RxAck TxDataSignal RxDataSignal",
    },
    contains: [
      hljs.COMMENT("//", "$"),
      hljs.COMMENT("/\\*", "\\*/", { contains: ["self"] }),
      hljs.QUOTE_STRING_MODE,
      // An attribute; its lists nest.
      { className: "meta", begin: "#\\[", end: "\\]", contains: [{ begin: "\\[", end: "\\]" }, hljs.QUOTE_STRING_MODE] },
      {
        className: "number",
        begin: "\\b\\d[\\d_]*(?:\\.\\d[\\d_]*)?(?:\\s?[KMGT]iB|(?:[kKMGT]i?B|[MGT]b|B)(?:/s|ps)?|ns|us|ms|s)\\b",
        relevance: 0,
      },
      { className: "number", begin: "\\b(?:0x[\\da-fA-F_]+|0o[0-7_]+|0b[01_]+|\\d[\\d_]*)\\b", relevance: 0 },
      word("fifo|parallel|scratch|step|view|when", named),
      word("executor", "\\b(?=\\s+\\w+\\s+for\\b)"),
      word("require|within", "\\b(?!\\s*(?:[=.,:;)\\]}]|$))"),
      word("otherwise", "\\b(?=\\s*=>)"),
      word("use", '\\b(?=\\s*")'),
      word("like", "\\b(?=\\s+[A-Za-z_])"),
      word("without|on", "\\b(?=\\s*\\()"),
    ],
  };
});

document.querySelectorAll("code.language-coll").forEach((block) => {
  block.innerHTML = hljs.highlight("coll", block.textContent).value;
});

// The playground lies beside the book where it was built. Without it, the page is as it is.
{
  const playground = document.createElement("script");
  playground.type = "module";
  playground.src = new URL("playground.js", document.currentScript.src).href;
  playground.onerror = () => {};
  document.head.append(playground);
}
