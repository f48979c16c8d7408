/** External labels and `instance`, which are added to series that do not have them. */
import { LABEL_NAME, type Labels, labelOf, toLabels, writeLabels } from "./labels.ts";

export class AddedLabels {
  readonly #labels: Labels;
  readonly #names: readonly string[];
  readonly #whole: string;

  /** Throws an Error when a name is not a label name. */
  constructor(external: { readonly [name: string]: string } = {}) {
    const wrong = Object.keys(external).find((name) => !LABEL_NAME.test(name));
    if (wrong !== undefined) {
      throw new Error(`${wrong} cannot be an external label: it is no name of a label`);
    }
    const { instance = "", ...others } = external;
    // toLabels drops empty values, but instance may be empty.
    this.#labels = insert(toLabels(Object.entries(others)), "instance", instance);
    this.#names = this.#labels.filter((_, index) => index % 2 === 0);
    this.#whole = writeLabels(this.#labels);
  }

  /** Writes the labels of a series followed by the ones that it lacks. */
  write(labels: Labels): string {
    const missing = this.#names.some((name) => labelOf(labels, name) !== "")
      ? writeLabels(this.#missingIn(labels))
      : this.#whole;
    const own = writeLabels(labels);
    return own === "" || missing === "" ? `${own}${missing}` : `${own},${missing}`;
  }

  #missingIn(labels: Labels): Labels {
    return this.#names
      .filter((name) => labelOf(labels, name) === "")
      .flatMap((name) => [name, labelOf(this.#labels, name)]);
  }
}

/** Inserts a label, which may be empty, in the order of names. */
function insert(labels: Labels, name: string, value: string): Labels {
  const after = labels.findIndex((other, index) => index % 2 === 0 && other > name);
  const at = after === -1 ? labels.length : after;
  return [...labels.slice(0, at), name, value, ...labels.slice(at)];
}
