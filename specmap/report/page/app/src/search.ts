// Finding things by words: every word must occur; things that are called so come first.

/** A thing to be found: what it is called, and everything else that is said of it. */
export interface Item {
  name: string;
  text: string;
}

/** Return the indices of the items that hold every word of the query, best first. */
export function search(query: string, items: readonly Item[]): number[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const [first] = words;
  if (first === undefined) return [];
  const found: [number, number][] = [];
  items.forEach(({ name, text }, index) => {
    const all = `${name} ${text}`.toLowerCase();
    if (words.every((word) => all.includes(word))) found.push([rank(first, name.toLowerCase()), index]);
  });
  return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, index]) => index);
}

/** 0 where the word is a whole name, 1 where a name begins with it, 2 inside one, 3 elsewhere. */
function rank(word: string, name: string): number {
  const names = name.split(/[^a-z0-9_]+/);
  if (names.includes(word)) return 0;
  return names.some((one) => one.startsWith(word)) ? 1 : name.includes(word) ? 2 : 3;
}
