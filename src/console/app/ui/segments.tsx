/** A choice between a few ways to show the same: one of them is pressed. */
interface SegmentsProps<Choice extends string> {
  readonly label: string;
  readonly choices: readonly Choice[];
  readonly value: Choice;
  onChange(choice: Choice): void;
}

export function Segments<Choice extends string>(props: SegmentsProps<Choice>) {
  const { label, choices, value, onChange } = props;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset belongs to a form, and these buttons are in no form
    <div className="segments" role="group" aria-label={label}>
      {choices.map((choice) => (
        <button
          key={choice}
          type="button"
          aria-pressed={choice === value}
          onClick={() => onChange(choice)}
        >
          {choice}
        </button>
      ))}
    </div>
  );
}
