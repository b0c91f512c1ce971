// @ts-check
// The parts that load when a reader uses them: the editor of a program, an exercise, and the page of the playground.
import { bench } from "./bench.js";
import { program } from "./listing.js";

export { attempt } from "./exercise.js";
export { playground } from "./page.js";

/**
 * Puts a bench in place of a block of code.
 * @param {HTMLElement} code
 * @param {URL} root
 * @param {HTMLButtonElement} button
 */
export function open(code, root, button) {
    const pre = /** @type {HTMLElement} */ (code.parentElement);
    const place = document.createElement("div");
    pre.after(place);
    pre.hidden = true;
    const made = bench(place, program(code, root), root, {
        close() {
            made.end();
            place.remove();
            pre.hidden = false;
            button.focus();
        },
    });
    made.focus();
}
