/** The key of a record that has this value; undefined for none. Of several it is the first. */
export function keyWith<Key extends string, Value>(
  record: Readonly<Record<Key, Value>>,
  value: Value,
): Key | undefined {
  return (Object.keys(record) as Key[]).find((key) => record[key] === value);
}
