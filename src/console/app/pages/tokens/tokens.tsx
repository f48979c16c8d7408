/** API tokens: the list of both kinds, and what can be done with each. */

import { useSuspenseInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, lazyRouteComponent } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import type { TokenJson } from "../../../../../gen/tessera/v1/token_pb.js";
import { loaded } from "../../api/loaded.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { tokensOf } from "../../api/tokens.ts";
import { useShortcut } from "../../shell/keys.ts";
import { Button, ShowMore } from "../../ui/button.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Page } from "../../ui/page.tsx";
import { TypedAhead } from "../../ui/typed-ahead.ts";
import type { Act } from "./table.tsx";
import { TokenTable } from "./table.tsx";
import "./tokens.css";

// Opened by a press only: the list comes without them.
const CreateToken = lazyRouteComponent(() => loaded(import("./create.tsx")));
const EditToken = lazyRouteComponent(() => loaded(import("./edit.tsx")));
const RotateToken = lazyRouteComponent(() => loaded(import("./rotate.tsx")));
const DeleteToken = lazyRouteComponent(() => loaded(import("./delete.tsx")));
const RevealToken = lazyRouteComponent(() => loaded(import("./reveal.tsx")));

const route = getRouteApi("/signed-in/o/$organization/tokens");

export function Tokens() {
  const organization = useOrganization();
  const { person } = usePerson();
  const list = useSuspenseInfiniteQuery(tokensOf(organization));
  const navigate = route.useNavigate();
  const { worker, create: isAsked = worker !== undefined } = route.useSearch();
  const [isCreating, setCreating] = useState(false);
  const [chosen, setChosen] = useState<{ readonly act: Act; readonly token: TokenJson }>();
  const tokens = list.data.pages.flatMap((page) => page.tokens ?? []);
  const close = () => setChosen(undefined);
  useShortcut("c", () => setCreating(true));
  const create = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      Create token
    </Button>
  );
  return (
    <Page
      title="API tokens"
      description="For the command line, for calls of protected deployments, and for your own Prometheus."
      actions={create}
    >
      {tokens.length === 0 ? (
        <Empty inPage title="No tokens yet">
          <p>A token lets a program act for you or for the organization {organization}.</p>
          {create}
        </Empty>
      ) : (
        <TokenTable
          tokens={tokens}
          me={person.email ?? ""}
          onAct={(act, token) => setChosen({ act, token })}
        />
      )}
      <ShowMore of={list} />
      <Suspense fallback={<TypedAhead />}>
        {(isCreating || isAsked) && (
          <CreateToken
            worker={worker}
            onClose={() => {
              setCreating(false);
              void navigate({ search: {}, replace: true });
            }}
          />
        )}
        {chosen?.act === "edit" && <EditToken token={chosen.token} onClose={close} />}
        {chosen?.act === "rotate" && <RotateToken token={chosen.token} onClose={close} />}
        {chosen?.act === "reveal" && <RevealToken token={chosen.token} onClose={close} />}
        {chosen?.act === "delete" && <DeleteToken token={chosen.token} onClose={close} />}
      </Suspense>
    </Page>
  );
}
