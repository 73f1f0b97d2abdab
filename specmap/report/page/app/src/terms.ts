// Conditions, settled three-valued just as specmap's Python does (specmap/codemap/condition.py):
// fill in what is known, join, carry units inwards, and try all cases where few tests are left.
import type { Atom, Term } from "./data.ts";

export type Truth = boolean | null;

/** A condition; equal conditions are the same object. */
interface Node {
  id: number;
  kind: "leaf" | "not" | "and" | "or";
  /** Of a leaf: the first atom with this test. */
  atom: number;
  terms: readonly Node[];
  negation?: Node;
}

const MAX_ATOMS = 8;

export class Conditions {
  readonly #terms: readonly Term[];
  readonly #leaves: readonly Node[];
  readonly #nodes = new Map<string, Node>();
  readonly #joins = new Map<string, Node>();
  readonly #true: Node;
  readonly #false: Node;

  constructor(atoms: readonly Atom[], terms: readonly Term[]) {
    this.#terms = terms;
    this.#true = this.#node("and", []);
    this.#false = this.#node("or", []);
    this.#leaves = atoms.map((atom) => this.#node("leaf", [], atom.same));
  }

  /** Settle a term; `truths` holds what is known, by atom. */
  settle(term: number, truths: readonly Truth[]): Truth {
    const left = this.#propagate(this.#filled(term, truths), new Map());
    if (left === this.#true) return true;
    if (left === this.#false) return false;
    const atoms = [...new Set(leavesOf(left))];
    return atoms.length < 2 || atoms.length > MAX_ATOMS ? null : byCases(left, atoms);
  }

  /** The atoms that stand in a term, each once, in order. */
  atomsOf(term: number): number[] {
    const found = new Set<number>();
    const seen = new Set<number>();
    const walk = (index: number) => {
      if (seen.has(index)) return;
      seen.add(index);
      const term = this.#terms[index];
      if (typeof term === "number") found.add(term);
      else if (term) for (const inner of term.slice(1) as number[]) walk(inner);
    };
    walk(term);
    return [...found];
  }

  #node(kind: Node["kind"], terms: readonly Node[], atom = -1): Node {
    const key = kind === "leaf" ? `leaf ${atom}` : `${kind} ${terms.map((term) => term.id).join(" ")}`;
    let node = this.#nodes.get(key);
    if (!node) this.#nodes.set(key, (node = { id: this.#nodes.size, kind, atom, terms }));
    return node;
  }

  #filled(term: number, truths: readonly Truth[]): Node {
    const done = new Map<number, Node>();
    const fill = (index: number): Node => {
      let node = done.get(index);
      if (!node) done.set(index, (node = this.#filledOne(this.#terms[index], truths, fill)));
      return node;
    };
    return fill(term);
  }

  #filledOne(term: Term | undefined, truths: readonly Truth[], fill: (index: number) => Node): Node {
    if (term === undefined) throw new Error("a condition names a term that the page does not hold");
    if (typeof term === "number") return this.#known(truths[term] ?? null) ?? this.#leaf(term);
    const [kind, ...indices] = term;
    const terms = indices.map(fill);
    return kind === "not" ? this.#negate(terms[0] ?? this.#true) : this.#join(kind, terms);
  }

  #leaf(atom: number): Node {
    const leaf = this.#leaves[atom];
    if (!leaf) throw new Error("a condition names a test that the page does not hold");
    return leaf;
  }

  #known(truth: Truth): Node | undefined {
    return truth === null ? undefined : truth ? this.#true : this.#false;
  }

  #join(kind: "and" | "or", terms: readonly Node[]): Node {
    const key = `${kind} ${terms.map((term) => term.id).join(" ")}`;
    let joined = this.#joins.get(key);
    if (!joined) this.#joins.set(key, (joined = this.#joined(kind, terms)));
    return joined;
  }

  #joined(kind: "and" | "or", terms: readonly Node[]): Node {
    const [neutral, absorbing] = kind === "and" ? [this.#true, this.#false] : [this.#false, this.#true];
    const flat = new Set<Node>();
    for (const term of terms) {
      if (term === absorbing) return absorbing;
      if (term.kind === kind) for (const inner of term.terms) flat.add(inner);
      else flat.add(term);
    }
    for (const term of flat) if (term.kind === "not" && flat.has(only(term))) return absorbing;
    const kept = [...flat];
    return kept.length > 1 ? this.#node(kind, kept) : kept[0] ?? neutral;
  }

  #negate(term: Node): Node {
    if (term.kind === "not") return only(term);
    if (term.kind === "leaf") return this.#node("not", [term]);
    term.negation ??= this.#join(term.kind === "and" ? "or" : "and", term.terms.map((inner) => this.#negate(inner)));
    return term.negation;
  }

  /** What a conjunction states is true inside its other terms, and false inside those of a disjunction. */
  #propagate(term: Node, known: ReadonlyMap<Node, boolean>): Node {
    if (term.kind === "leaf") return this.#known(known.get(term) ?? null) ?? term;
    if (term.kind === "not") return this.#negate(this.#propagate(only(term), known));
    const below = new Map(known);
    for (const inner of term.terms) {
      if (inner.kind === "leaf") below.set(inner, term.kind === "and");
      else if (inner.kind === "not") below.set(only(inner), term.kind !== "and");
    }
    const plain = (inner: Node) => inner.kind === "leaf" || inner.kind === "not";
    const done = term.terms.map((inner) => this.#propagate(inner, plain(inner) ? known : below));
    return term.kind === "and" ? this.#join("and", done) : this.#either(done);
  }

  /** A disjunction with what all its terms share stated once. */
  #either(terms: readonly Node[]): Node {
    const joined = this.#join("or", terms);
    if (joined.kind !== "or" || joined.terms.length < 2) return joined;
    const parts = joined.terms.map((term) => (term.kind === "and" ? term.terms : [term]));
    const [first = [], ...others] = parts;
    const shared = new Set(first.filter((term) => others.every((part) => part.includes(term))));
    if (!shared.size) return joined;
    const rest = parts.map((part) => this.#join("and", part.filter((term) => !shared.has(term))));
    return this.#join("and", [...shared, this.#either(rest)]);
  }
}

function only(term: Node): Node {
  return term.terms[0] as Node;
}

function* leavesOf(term: Node): Generator<number> {
  if (term.kind === "leaf") yield term.atom;
  else for (const inner of term.terms) yield* leavesOf(inner);
}

/** True or false where every case of the atoms gives that. */
function byCases(term: Node, atoms: readonly number[]): Truth {
  const bits = new Map(atoms.map((atom, at) => [atom, 1 << at]));
  const holds = (one: Node, row: number): boolean => {
    if (one.kind === "leaf") return (row & (bits.get(one.atom) ?? 0)) !== 0;
    if (one.kind === "not") return !holds(only(one), row);
    return one.kind === "and" ? one.terms.every((t) => holds(t, row)) : one.terms.some((t) => holds(t, row));
  };
  const first = holds(term, 0);
  for (let row = 1; row < 1 << atoms.length; row++) if (holds(term, row) !== first) return null;
  return first;
}
