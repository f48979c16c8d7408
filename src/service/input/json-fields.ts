/** Arguments as pieces of JSON text, from which the object of all of them is put together. */

/** The JSON texts of arguments, by name. */
export type JsonFields = Map<string, string>;

/** The object of all of them. */
export function textOfFields(fields: JsonFields): string {
  return `{${[...fields].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}
