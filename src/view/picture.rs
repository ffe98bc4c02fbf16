//! The memory of a step over time, before and after planning, as one picture.

use std::fmt::Write as _;

use lmsc_ir::Bytes;
use serde_json::Value;

/// Sizes of the picture and of its memory chart, in pixels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 884.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 320.0;

/// The lanes of copies: the top of the first, and the height of one.
const LANES: f64 = 354.0;
const LANE: f64 = 14.0;

/// Colours for light and dark backgrounds.
const STYLE: &str = "\
svg{font:13px system-ui,sans-serif;--ink:#24292f;--dim:#6e7781;--line:#d0d7de;--fill:#2f81f7;--out:#bf8700;--in:#1a7f37;--limit:#cf222e}
@media (prefers-color-scheme:dark){svg{--ink:#e6edf3;--dim:#8d96a0;--line:#30363d;--fill:#4493f8;--out:#d29922;--in:#3fb950;--limit:#f85149}}
text{fill:var(--ink)}.dim{fill:var(--dim)}.end{text-anchor:end}.mid{text-anchor:middle}.title{font-size:16px;font-weight:600}
.axis{stroke:var(--line)}.before{fill:none;stroke:var(--dim);stroke-width:1.5;stroke-dasharray:5 4}
.after{fill:var(--fill);fill-opacity:.28;stroke:var(--fill);stroke-width:1.5}.limit{stroke:var(--limit);stroke-width:1.5}
.limit-text{fill:var(--limit)}.out{fill:var(--out)}.in{fill:var(--in)}";

/// The picture as SVG, for [`super::plan_data`], a title and the budget.
pub(crate) fn picture(data: &Value, title: &str, budget: u64) -> String {
    let points = |name: &str| -> Vec<(f64, f64)> {
        let rows = data["memory"][name].as_array().into_iter().flatten().filter_map(Value::as_array);
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        rows.map(|row| (number(&row[0]), row[1..].iter().map(number).sum())).collect()
    };
    let (before, after) = (points("before"), points("after"));
    let end = data["makespan_ms"].as_f64().unwrap_or_default().max(f64::MIN_POSITIVE);
    let highest = before.iter().chain(&after).map(|point| point.1).fold(budget as f64, f64::max);
    let x = |ms: f64| LEFT + ms / end * (RIGHT - LEFT);
    let y = |bytes: f64| BOTTOM - bytes / (highest * 1.04) * (BOTTOM - TOP);

    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("a String takes everything");
    line(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{0}</title>\n\
         <style>{STYLE}</style>\n<text class=\"title\" x=\"{LEFT}\" y=\"24\">{0}</text>",
        escaped(title)
    ));
    let unit = 1024f64.powi((highest.log2() / 10.0).floor() as i32);
    for value in ticks(highest / unit) {
        let at = y(value * unit);
        let label = Bytes((value * unit) as u64);
        line(format!("<path class=\"axis\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>"));
        line(format!("<text class=\"dim end\" x=\"{:.0}\" y=\"{:.1}\">{label}</text>", LEFT - 6.0, at + 4.0));
    }
    for value in ticks(end) {
        let label = if value == 0.0 { "0".to_owned() } else { format!("{value} ms") };
        line(format!(
            "<text class=\"dim mid\" x=\"{:.1}\" y=\"{:.0}\">{label}</text>",
            x(value),
            BOTTOM + 18.0
        ));
    }
    line(format!("<path class=\"after\" d=\"M{LEFT} {BOTTOM}{}V{BOTTOM}Z\"/>", steps(&after, end, x, y)));
    line(format!("<path class=\"before\" d=\"M{LEFT} {BOTTOM}{}\"/>", steps(&before, end, x, y)));
    let limit = y(budget as f64);
    line(format!("<path class=\"limit\" d=\"M{LEFT} {limit:.1}H{RIGHT}\"/>"));
    line(format!(
        "<text class=\"limit-text end\" x=\"{RIGHT}\" y=\"{:.1}\">budget {}</text>",
        limit - 6.0,
        Bytes(budget)
    ));
    line(format!(
        "<text class=\"dim\" x=\"{LEFT}\" y=\"44\">device memory: dashed without a plan, filled with it; below, copies to \
         the host and back</text>"
    ));
    for (lane, class) in [(1, "out"), (2, "in")] {
        let top = LANES + f64::from(lane - 1) * (LANE + 6.0);
        line(format!(
            "<text class=\"dim end\" x=\"{:.0}\" y=\"{:.0}\">{class}</text>",
            LEFT - 6.0,
            top + 11.0
        ));
        let mut bars = String::new();
        for step in data["steps"].as_array().into_iter().flatten().filter(|step| step["lane"] == lane) {
            let at = |field: &str| x(step[field].as_f64().unwrap_or_default());
            let (from, until) = (at("start"), at("end"));
            write!(bars, "M{from:.1} {top}H{:.1}v{LANE}H{from:.1}Z", until.max(from + 0.5))
                .expect("a String takes everything");
        }
        line(format!("<path class=\"{class}\" d=\"{bars}\"/>"));
    }
    line("</svg>".to_owned());
    out
}

/// A path of steps: each value holds until the next point, the last one until `end`.
fn steps(points: &[(f64, f64)], end: f64, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let ends = points.iter().skip(1).map(|point| point.0).chain([end]);
    let step = |(&(_, bytes), until): (&(f64, f64), f64)| format!("V{:.1}H{:.1}", y(bytes), x(until));
    points.iter().zip(ends).map(step).collect()
}

/// About five multiples of 1, 2 or 5 times a power of ten, from 0 to `highest`.
fn ticks(highest: f64) -> Vec<f64> {
    let rough = (highest / 5.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|&step| step >= rough);
    let step = step.unwrap_or(rough);
    (0..=(highest / step).floor() as u32).map(|number| f64::from(number) * step).collect()
}

/// The text, escaped for use between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(21.06), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(ticks(748.4), [0.0, 200.0, 400.0, 600.0]);
        assert_eq!(ticks(0.9), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8]);
    }

    #[test]
    fn memory_and_copies_are_drawn_to_scale() {
        let data = serde_json::json!({
            "makespan_ms": 10.0,
            "memory": { "before": [[0.0, 100], [5.0, 200]], "after": [[0.0, 50, 50, 0, 0], [5.0, 50, 50, 0, 0]] },
            "steps": [{"lane": 0, "start": 0.0, "end": 5.0}, {"lane": 1, "start": 0.0, "end": 5.0}],
        });
        let picture = picture(&data, "a < b", 104);
        assert!(picture.contains("<title>a &lt; b</title>"));
        // The copy takes the first half of its lane, and there is no copy in.
        assert!(picture.contains("d=\"M64.0 354H474.0v14H64.0Z\"/>"), "{picture}");
        assert!(picture.contains("<path class=\"in\" d=\"\"/>"), "{picture}");
        // The chart ends at the peak, twice the budget, plus 4 %; the budget's line is at half the peak.
        assert!(picture.contains("<path class=\"limit\" d=\"M64 188.0H884\"/>"), "{picture}");
    }
}
