// @ts-check
// Paths of files in memory.

/** Returns the path of a file that is named from a folder, without `.` and `..`; the root has no folder above it. */
export function resolved(folder, name) {
    /** @type {string[]} */
    const parts = [];
    for (const part of `${folder}/${name}`.split("/")) {
        if (part === "..") parts.pop();
        else if (part && part !== ".") parts.push(part);
    }
    return parts.join("/");
}

/** Returns the folder of a path. */
export function folderOf(path) {
    return path.split("/").slice(0, -1).join("/");
}

/** Returns the last part of a path. */
export function baseName(path) {
    return path.split("/").at(-1) ?? path;
}
