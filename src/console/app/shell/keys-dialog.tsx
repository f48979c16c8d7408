/** The keyboard shortcuts. */
import { Dialog } from "../ui/dialog.tsx";
import { PLACES } from "./places.ts";

export default function KeysDialog({ onClose }: { onClose(): void }) {
  const keys = [
    ["Ctrl K", "Search or go to"],
    ["?", "Show these keys"],
    ["/", "Search the log, or the list of tasks"],
    ["j", "Go to the next row of a table, or line of a log"],
    ["k", "Go to the row before"],
    ["Enter", "Open the row"],
    ["x", "Select the row, where rows can be selected"],
    ["Esc", "Leave the table"],
    ["r", "Show the task of the page as JSON"],
    ["f", "Follow the log, or pause"],
    ...PLACES.map(({ key, label }) => [`g ${key}`, `Go to ${label}`]),
  ];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="facts">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
