/** Cases of `it.each` with a beginning that fits into a title: `shown("a", "b")`, and `%s` in the title. */
export function shown<Text extends string | undefined>(
  ...texts: readonly Text[]
): [string, Text][] {
  return texts.map((text) => [JSON.stringify(text?.slice(0, 40)) ?? "undefined", text]);
}
