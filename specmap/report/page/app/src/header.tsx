// The top of the page: the bar, what is wrong and what to do, and what was looked at.
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { useShared } from "./context.ts";
import type { Launch, Side } from "./data.ts";
import { Fold } from "./fold.tsx";
import { PlaceFold } from "./place.tsx";
import { applyTheme, storedTheme, type Theme } from "./theme.ts";
import { Buttons, Scroll, plural } from "./ui.tsx";

export interface Stop {
  id: string;
  title: string;
}

export function Bar(props: { stops: Stop[]; here: string; sides: Side[]; shown: number; onSide: (index: number) => void }) {
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const label = props.sides.map((side) => side.label).join("  |  ");
  return (
    <header class="bar">
      <h1>
        specmap <span class="target">{label}</span>
      </h1>
      <nav aria-label="Sections">
        <ul class="plain">
          {props.stops.map(({ id, title }) => (
            <li key={id}>
              <a href={`#${id}`} aria-current={props.here === id ? "true" : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="right">
        {props.sides.length > 1 && (
          <Buttons
            label="Side shown below"
            value={String(props.shown)}
            options={props.sides.map((side, index) => [String(index), <>{"AB"[index]} <span class="side-name">{side.label}</span></>] as const)}
            onChange={(value) => props.onSide(Number(value))}
          />
        )}
        <Buttons
          label="Colours"
          value={theme}
          options={[["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]] as const}
          onChange={(value) => {
            applyTheme(value);
            setTheme(value);
          }}
        />
      </div>
    </header>
  );
}

const SIGNS = { ok: "✓", warn: "!", bad: "✗", unknown: "?" } as const;
const WORDS = { ok: "Nothing to do", warn: "Look at this", bad: "Something is wrong", unknown: "Not decided" } as const;
const BECAUSE = { ok: "Besides", warn: "Why", bad: "Why", unknown: "What is known" } as const;

export function Headline({ side, name }: { side: Side; name: string }) {
  const { level, text, todo, because } = side.headline;
  return (
    <div class={`headline ${level}`}>
      <span class="sign" aria-hidden="true">
        {SIGNS[level]}
      </span>
      <div class="stack">
        <p>
          <span class="hidden-text">{WORDS[level]}: </span>
          {name && <span class="soft">{name}: </span>}
          <strong>{text}</strong>
        </p>
        {todo.length > 0 && (
          <div class="todo">
            <h2>{level === "ok" ? "If it is slow all the same" : "What to do"}</h2>
            <ol>
              {todo.map((line) => (
                <li key={line}>{line}</li>
              ))}
            </ol>
          </div>
        )}
        {because.length > 0 && (
          <div class="because">
            <h2>{BECAUSE[level]}</h2>
            <ul>
              {because.map((reason, index) => (
                <li key={index}>
                  <PlaceFold side={side} place={reason.place} text={reason.text} />
                </li>
              ))}
            </ul>
          </div>
        )}
      </div>
    </div>
  );
}

export function Facts() {
  const { side } = useShared();
  return (
    <div class="stack facts-block">
      <dl class="facts">
        {side.facts.map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {side.partial && <p class="none">This map is partial: {side.partial}</p>}
      {side.run?.notes.map((note) => (
        <p key={note} class="none">
          {note}
        </p>
      ))}
      {side.launch && <LaunchFacts side={side} launch={side.launch} />}
    </div>
  );
}

/** Lines break between arguments alone; a value stays with its flag. */
function Command({ words }: { words: string[] }) {
  const pieces: string[] = [];
  for (const word of words) {
    const last = pieces.at(-1);
    if (last?.startsWith("-") && !last.includes(" ") && !word.startsWith("-")) pieces[pieces.length - 1] = `${last} ${word}`;
    else pieces.push(word);
  }
  return (
    <p class="mono command">
      {pieces.map((piece, index) => (
        <Fragment key={index}>
          <span class="argument">{piece}</span>{" "}
        </Fragment>
      ))}
    </p>
  );
}

function LaunchFacts({ side, launch }: { side: Side; launch: Launch }) {
  const { refusal, mayRefuse, concerns, assumptions, missing, notes, settings } = launch;
  return (
    <>
      {refusal && (
        <div class="panel stack">
          <p>
            <strong>This launch does not start.</strong> {refusal.error}: {refusal.message}
          </p>
          <PlaceFold side={side} place={refusal.place} />
        </div>
      )}
      {launch.command.length > 0 && <Command words={launch.command} />}
      {concerns.length > 0 && (
        <div class="preflight">
          <h2>Preflight</h2>
          <ul>
            {concerns.map((one, index) => (
              <li key={index} class={one.failing ? "ink" : "soft"}>
                <PlaceFold side={side} place={one.place} text={one.message} />
              </li>
            ))}
          </ul>
        </div>
      )}
      {mayRefuse.length > 0 && (
        <Fold summary={`${plural(mayRefuse.length, "check")} that may stop the start, because what they test is not known`}>
          {() => mayRefuse.map((one, index) => <PlaceFold key={index} side={side} place={one.place} text={one.message} />)}
        </Fold>
      )}
      {(assumptions.length > 0 || missing.length > 0 || notes.length > 0) && (
        <Fold summary={`What this rests on: ${plural(assumptions.length, "assumption")}, ${missing.length} not known`}>
          {() => (
            <ul>
              {assumptions.map((one) => (
                <li key={one.key}>
                  assumed: {one.text} {one.option && <>(say otherwise with <code>{one.option}</code>)</>}
                </li>
              ))}
              {missing.map((one) => (
                <li key={one}>not known: {one}</li>
              ))}
              {notes.map((one) => (
                <li key={one}>{one}</li>
              ))}
            </ul>
          )}
        </Fold>
      )}
      {settings.length > 0 && (
        <Fold summary={`${plural(settings.length, "setting")} after the release's own argument code`}>
        {() => (
          <Scroll label="Settings">
            <table>
              <thead>
                <tr>
                  <th scope="col">Setting</th>
                  <th scope="col">Value</th>
                  <th scope="col">From</th>
                </tr>
              </thead>
              <tbody>
                {settings.map((setting) => (
                  <tr key={setting.name}>
                    <th scope="row" class="mono">{setting.name}</th>
                    <td class="mono clip">{setting.known ? setting.value : "not known"}</td>
                    <td>
                      {setting.origins.map((origin, index) => (
                        <PlaceFold key={index} side={side} place={origin.place} text={origin.text} />
                      ))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        )}
        </Fold>
      )}
    </>
  );
}
