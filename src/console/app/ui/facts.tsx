/** Names with their values. */
export function Facts({ entries }: { readonly entries: Readonly<Record<string, string>> }) {
  return (
    <dl className="facts">
      {Object.entries(entries).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
