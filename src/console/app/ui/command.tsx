/** A line to copy: a command, an address, the value of a token. */
import { CopyButton } from "./copy-button.tsx";

interface CommandProps {
  readonly text: string;
  readonly label?: string;
}

export function Command({ text, label = "Copy" }: CommandProps) {
  return (
    <div className="command copied-from">
      <code>{text}</code>
      <CopyButton text={text} label={label} what={text.slice(0, 60)} />
    </div>
  );
}
