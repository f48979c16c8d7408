/** The page of a deployment on its own host, and of `tessera serve`: the playground is all of it. */
import { useMemo, useState, useSyncExternalStore } from "react";
import favicon from "../../favicon.svg";
import { Button } from "../../ui/button.tsx";
import { Playground } from "./playground.tsx";
import { ofHost } from "./target.ts";
import { currentToken, TokenDialog } from "./token-dialog.tsx";
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
