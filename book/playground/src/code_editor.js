// @ts-check
// The editor of a program: text, colors, marks and keys.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { closeLintPanel, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { language } from "./language.js";

/**
 * Makes an editor in `parent`.
 * @param {HTMLElement} parent
 * @param {{ text: string, label: string, describedBy: string, changed: () => void, left: () => void }} options
 *     `changed` is called after each change of the text, `left` when the reader leaves the editor by Escape.
 */
export function codeEditor(parent, { text, label, describedBy, changed, left }) {
    const leave = (view) => {
        if (!closeLintPanel(view)) left();
        return true;
    };
    const view = new EditorView({
        parent,
        state: EditorState.create({
            doc: text,
            extensions: [
                lineNumbers(),
                lintGutter(),
                history(),
                drawSelection(),
                highlightActiveLine(),
                indentOnInput(),
                bracketMatching(),
                indentUnit.of("    "),
                language,
                keymap.of([
                    { key: "Escape", run: leave },
                    ...lintKeymap,
                    ...defaultKeymap,
                    ...historyKeymap,
                    indentWithTab,
                ]),
                EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": describedBy }),
                EditorView.updateListener.of((update) => update.docChanged && changed()),
            ],
        }),
    });
    return {
        view,
        /** The program's text. */
        get text() {
            return view.state.doc.toString();
        },
        /** Puts a text in place of the program; the part that differs is replaced, so that the cursor stays. */
        set text(next) {
            const now = view.state.doc.toString();
            if (now === next) return;
            let from = 0;
            while (from < now.length && now[from] === next[from]) from++;
            let [to, end] = [now.length, next.length];
            while (to > from && end > from && now[to - 1] === next[end - 1]) {
                to--;
                end--;
            }
            view.dispatch({ changes: { from, to, insert: next.slice(from, end) } });
        },
        /** Shows marks of diagnostics. */
        mark(diagnostics) {
            view.dispatch(setDiagnostics(view.state, diagnostics));
        },
        focus() {
            view.focus();
        },
    };
}
