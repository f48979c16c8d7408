/** The keyboard shortcuts. */
import { Dialog } from "../ui/dialog.tsx";
import { PLACES } from "./places.ts";

export default function KeysDialog({ onClose }: { onClose(): void }) {
  const keys = [
    ["Ctrl K", "Search or go to"],
    ["?", "Show these keys"],
    ["x", "Select the task in focus"],
    ["r", "Show the task of the page as JSON"],
    ["/", "Search the log"],
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
