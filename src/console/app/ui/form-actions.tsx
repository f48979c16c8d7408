/** The buttons of a form in a dialog, and the one of what it made. */
import { Button } from "./button.tsx";

interface FormActionsProps {
  /** What the form does, such as `Rotate`. */
  readonly action: string;
  readonly isBusy: boolean;
  /** Nothing is to be sent yet. */
  readonly disabled?: boolean;
  onClose(): void;
}

export function FormActions({ action, isBusy, disabled, onClose }: FormActionsProps) {
  return (
    <div className="dialog-actions">
      <Button onClick={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" disabled={disabled} isBusy={isBusy}>
        {action}
      </Button>
    </div>
  );
}

export function Done({ onClose }: Pick<FormActionsProps, "onClose">) {
  return (
    <div className="dialog-actions">
      <Button kind="primary" data-autofocus onClick={onClose}>
        Done
      </Button>
    </div>
  );
}
