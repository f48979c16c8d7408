/** The heading of a page, with its actions. Sets the title of the document. */
import { type ReactNode, useEffect } from "react";
import { useOrganization } from "../api/session.ts";

interface PageProps {
  readonly title: string;
  /** Which of several pages with this title it is: its tab shows it to who sees the page. */
  readonly part?: string | undefined;
  /** The way to the page, above its title. */
  readonly crumbs?: ReactNode;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page(props: PageProps) {
  const { title, part, crumbs, description, actions, children } = props;
  const organization = useOrganization();
  const whole = part === undefined ? title : `${title}: ${part}`;
  useEffect(() => {
    document.title = `${whole} · ${organization} · Tessera`;
  }, [whole, organization]);
  return (
    <div className="page">
      <header className="page-header">
        <div>
          {crumbs !== undefined && (
            <nav className="crumbs" aria-label="Breadcrumb">
              {crumbs}
            </nav>
          )}
          <h1 aria-label={part && whole}>{title}</h1>
          {description !== undefined && <p className="page-description">{description}</p>}
        </div>
        {actions !== undefined && <div className="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
