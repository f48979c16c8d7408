/** The buttons of a form in a dialog. */
import { Button } from "./button.tsx";

interface FormActionsProps {
  /** What the form does, such as `Rotate`. */
  readonly action: string;
  readonly isBusy: boolean;
  onClose(): void;
}

export function FormActions({ action, isBusy, onClose }: FormActionsProps) {
  return (
    <div className="dialog-actions">
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" isBusy={isBusy}>
        {action}
      </Button>
    </div>
  );
}
