/** Labels as data and as text. */

/** Names and values by turns, sorted by name, without the metric's own; the same for the life of a series. */
export type Labels = readonly string[];

/** What names of metrics and labels may be. Source: the data model of Prometheus. */
export const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
export const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Sorts by name and leaves out empty values, which Prometheus does not tell from absent ones. */
export function toLabels(pairs: Iterable<readonly [name: string, value: string]>): Labels {
  return [...pairs]
    .filter(([, value]) => value !== "")
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flat();
}

/** The value of a label; empty where there is none. */
export function labelOf(labels: Labels, name: string): string {
  for (let index = 0; index < labels.length; index += 2) {
    if (labels[index] === name) {
      return labels[index + 1] as string;
    }
  }
  return "";
}

/** `a="1",b="2"`. */
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

/** The text of a HELP line. */
export function escapeHelp(help: string): string {
  return help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
