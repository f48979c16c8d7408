/** Labels of series, as data and as text. */

/**
 * Alternating names and values, sorted by name, without the metric's name;
 * constant for the life of a series.
 */
export type Labels = readonly string[];

/** Valid names of labels. Source: the data model of Prometheus. */
export const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Sorts by name and drops empty values, which Prometheus treats as absent. */
export function toLabels(pairs: Iterable<readonly [name: string, value: string]>): Labels {
  return [...pairs]
    .filter(([, value]) => value !== "")
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flat();
}

/** Returns the value of a label; empty when it is absent. */
export function labelOf(labels: Labels, name: string): string {
  for (let index = 0; index < labels.length; index += 2) {
    if (labels[index] === name) {
      return labels[index + 1] as string;
    }
  }
  return "";
}

/** Labels as names with their values. */
export function toRecord(labels: Labels): Record<string, string> {
  const pairs: [string, string][] = [];
  for (let index = 0; index < labels.length; index += 2) {
    pairs.push([labels[index] as string, labels[index + 1] as string]);
  }
  return Object.fromEntries(pairs);
}

/** Writes `a="1",b="2"`. */
export function writeLabels(labels: Labels): string {
  let text = "";
  for (let index = 0; index < labels.length; index += 2) {
    text += `${index === 0 ? "" : ","}${labels[index]}="${escapeValue(labels[index + 1] as string)}"`;
  }
  return text;
}

const SPECIAL = /[\\"\n]/;

function escapeValue(value: string): string {
  return SPECIAL.test(value)
    ? value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")
    : value;
}

/** Escapes the text of a HELP line. */
export function escapeHelp(help: string): string {
  return help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
