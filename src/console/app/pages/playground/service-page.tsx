/** The page of a deployment on its own host, and of `tessera serve`: the playground is all of it. */
import { useMemo, useState, useSyncExternalStore } from "react";
import favicon from "../../favicon.svg";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { Playground } from "./playground.tsx";
import { ofHost } from "./target.ts";
import { useDescription } from "./use-description.ts";
import "../../shell/single-page.css";

interface Question {
  readonly reason?: string;
  answer(isNew: boolean): void;
}

export function ServicePage() {
  const [question, setQuestion] = useState<Question>();
  const target = useMemo(() => ofHost(location.origin, currentToken, asking(setQuestion)), []);
  const { data: service, refetch } = useDescription(target);
  const hash = useSyncExternalStore(
    (onChange) => {
      addEventListener("hashchange", onChange);
      return () => removeEventListener("hashchange", onChange);
    },
    () => location.hash,
  );
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a part of the page, without its address */}
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          // The address names the endpoint, and stays as it is.
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the endpoint
      </a>
      <header className="single-bar">
        <a className="brand" href="#/">
          <img src={favicon} alt="" width="20" height="20" />
          <bdi>{service?.name ?? "Playground"}</bdi>
        </a>
        <nav aria-label="Documents">
          <a href="/docs.json">OpenAPI</a>
          <a href="/schema.json">Schema</a>
          <Button
            kind="quiet"
            onClick={() => setQuestion({ answer: (isNew) => isNew && void refetch() })}
          >
            Token
          </Button>
        </nav>
      </header>
      <Playground target={target} hash={hash} isPage />
      {question && (
        <TokenDialog
          reason={question.reason}
          onClose={(isNew) => {
            setQuestion(undefined);
            question.answer(isNew);
          }}
        />
      )}
    </>
  );
}

/** Asks by a question on the page. Calls that want a token at the same time share it. */
function asking(show: (question: Question) => void): (reason: string) => Promise<boolean> {
  let asked: Promise<boolean> | undefined;
  return (reason) => {
    asked ??= new Promise<boolean>((answer) => show({ reason, answer })).finally(() => {
      asked = undefined;
    });
    return asked;
  };
}

// Asks for the token that calls are made with.

const KEY = "tessera.token";

/** The token of this tab, which it keeps until it is closed. */
const currentToken = (): string | null => sessionStorage.getItem(KEY);

interface TokenDialogProps {
  /** Why it is asked for. */
  readonly reason?: string | undefined;
  /** Told whether there is a new token. */
  onClose(isNew: boolean): void;
}

function TokenDialog({ reason, onClose }: TokenDialogProps) {
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
