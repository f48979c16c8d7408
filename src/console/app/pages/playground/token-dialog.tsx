/** Asks for the token that calls are made with. */
import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

const KEY = "tessera.token";

/** The token of this tab, which it keeps until it is closed. */
export const currentToken = (): string | null => sessionStorage.getItem(KEY);

interface TokenDialogProps {
  /** Why it is asked for. */
  readonly reason?: string | undefined;
  /** Told whether there is a new token. */
  onClose(isNew: boolean): void;
}

export function TokenDialog({ reason, onClose }: TokenDialogProps) {
  const [value, setValue] = useState("");
  return (
    <Dialog title="API token" onClose={() => onClose(false)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const token = value.trim();
          if (token !== "") {
            sessionStorage.setItem(KEY, token);
          }
          onClose(token !== "");
        }}
      >
        <p>
          {reason ?? "Sent as a bearer token with every call, and kept until this tab is closed."}
        </p>
        <Field label="Token" hint="On a platform, tokens are made in its console under API tokens.">
          {(control) => (
            <input
              {...control}
              type="password"
              autoComplete="off"
              spellCheck={false}
              data-autofocus
              value={value}
              onChange={({ target }) => setValue(target.value)}
            />
          )}
        </Field>
        <div className="dialog-actions">
          <Button onClick={() => onClose(false)}>Cancel</Button>
          {currentToken() !== null && (
            <Button
              onClick={() => {
                sessionStorage.removeItem(KEY);
                onClose(false);
              }}
            >
              Remove
            </Button>
          )}
          <Button kind="primary" type="submit">
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
