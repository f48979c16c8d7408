/** The heading of a page, with its actions. Sets the title of the document. */
import { type ReactNode, useEffect } from "react";
import { useOrganization } from "../api/session.ts";

interface PageProps {
  readonly title: string;
  /** The way to the page, above its title. */
  readonly crumbs?: ReactNode;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, crumbs, description, actions, children }: PageProps) {
  const organization = useOrganization();
  useEffect(() => {
    document.title = `${title} · ${organization} · Tessera`;
  }, [title, organization]);
  return (
    <div className="page">
      <header className="page-header">
        <div>
          {crumbs !== undefined && (
            <nav className="crumbs" aria-label="Breadcrumb">
              {crumbs}
            </nav>
          )}
          <h1>{title}</h1>
          {description !== undefined && <p className="page-description">{description}</p>}
        </div>
        {actions !== undefined && <div className="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
