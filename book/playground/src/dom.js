// @ts-check
// Elements of the page.

/**
 * Makes an element. A property that is a function is a listener of the event of its name, one that is `false` is left
 * out, and the other properties are attributes.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (typeof value === "function") made.addEventListener(name, value);
        else if (value !== false) made.setAttribute(name, value === true ? "" : String(value));
    }
    made.append(...children);
    return made;
}

/** Makes a button. */
export function button(text, click, properties = {}) {
    return element("button", { type: "button", class: "coll-button", click, ...properties }, text);
}

let serial = 0;

/** Returns a name for an element that no other element has. */
export function unique(name) {
    serial += 1;
    return `coll-${name}-${serial}`;
}

/** Gives the reader a text as a file. */
export function download(name, text) {
    const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    element("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Keeps the keys of an element from the book, for which arrows turn pages and letters open the search. */
export function keepKeys(made) {
    made.addEventListener("keydown", (event) => event.stopPropagation());
}
