/** The keyboard shortcuts. */
import { Dialog } from "../ui/dialog.tsx";
import { PLACES } from "./places.ts";
import "./keys-dialog.css";

const GROUPS = [
  [
    "Everywhere",
    [
      ["Ctrl K", "Search or go to"],
      ["?", "Show these keys"],
    ],
  ],
  [
    "Tables and logs",
    [
      ["/", "Search the log or the tasks"],
      ["j", "Next row or line"],
      ["k", "Row or line before"],
      ["Enter", "Open the row, or close it"],
      ["x", "Select the row"],
      ["Esc", "Close the row, or leave the table"],
      ["f", "Follow the log, or pause"],
    ],
  ],
  [
    "Pages",
    [
      ["c", "Create a token, at API tokens"],
      ["r", "Show the task as JSON"],
      ["Ctrl Enter", "Call, in the playground"],
    ],
  ],
  ["Go to", PLACES.map(({ key, label }) => [`g ${key}`, label])],
] as const satisfies readonly (readonly [string, readonly (readonly string[])[]])[];

export default function KeysDialog({ onClose }: { onClose(): void }) {
  return (
    <Dialog title="Keys" className="keys" onClose={onClose}>
      <div className="key-groups">
        {GROUPS.map(([group, keys]) => (
          <section key={group} aria-label={group}>
            <h3>{group}</h3>
            <dl>
              {keys.map(([key, what]) => (
                <div key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
