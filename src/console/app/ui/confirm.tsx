/** Asks before something that cannot be undone. The safe answer has the focus. */
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { messageOf } from "../api/errors.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Notice } from "./notice.tsx";

interface ConfirmProps<Answer> {
  readonly title: string;
  readonly children: ReactNode;
  /** What the button does, such as `Delete`. */
  readonly action: string;
  /** What the other button says, where the action itself is called so. Default: Cancel. */
  readonly dismiss?: string;
  run(): Promise<Answer>;
  onDone(answer: Answer): void;
  onClose(): void;
}

export function Confirm<Answer>(props: ConfirmProps<Answer>) {
  const { title, children, action, dismiss = "Cancel", run, onDone, onClose } = props;
  const acting = useMutation({ mutationFn: run, onSuccess: onDone });
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {acting.error && <Notice kind="error">{messageOf(acting.error)}</Notice>}
      <div className="dialog-actions">
        <Button data-autofocus onClick={onClose}>
          {dismiss}
        </Button>
        <Button kind="danger" isBusy={acting.isPending} onClick={() => acting.mutate()}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
