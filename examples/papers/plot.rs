//! Line plots as SVG, for light and dark pages.

use std::fmt::Write;

/// Curves over two axes.
pub(crate) struct Plot {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    /// Points above are cut off.
    pub(crate) top: Option<f64>,
    pub(crate) curves: Vec<Curve>,
}

/// Points joined by lines; where a value is missing, the line has a gap.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, Option<f64>)>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 150.0;
const BELOW: f64 = 48.0;
const ABOVE: f64 = 34.0;
const COLORS: &[&str] = &[
    "#4c78a8", "#e45756", "#54a24b", "#f58518", "#9c6bb3", "#3a9a9a", "#b8860b", "#8b9099", "#d67195",
    "#6b4c2a", "#1f77b4", "#7f7f7f",
];

impl Plot {
    pub(crate) fn svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|c| &c.points);
        let xs = || points().map(|p| p.0);
        let ys = || points().filter_map(|p| p.1);
        let (x0, x1) = (xs().fold(f64::MAX, f64::min), xs().fold(f64::MIN, f64::max));
        let low = ys().fold(f64::MAX, f64::min);
        let y0 = if low >= 1.0 && ys().all(|y| y < 20.0) { 1.0 } else { 0f64.min(low) };
        let y1 = ys().fold(f64::MIN, f64::max).min(self.top.unwrap_or(f64::MAX));
        let y1 = if y1 > y0 { y1 } else { y0 + 1.0 };
        let y1 = y0 + ((y1 - y0) / round_step(y1 - y0)).ceil() * round_step(y1 - y0);
        let at_x = |x: f64| LEFT + (x - x0) / (x1 - x0).max(f64::MIN_POSITIVE) * (WIDTH - LEFT - RIGHT);
        let at_y = |y: f64| HEIGHT - BELOW - (y - y0) / (y1 - y0) * (HEIGHT - BELOW - ABOVE);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<style>text{{fill:#445}}.grid{{stroke:#d8dce2}}.back{{fill:#fff}}\
             @media(prefers-color-scheme:dark){{text{{fill:#c4c9d0}}.grid{{stroke:#353b43}}.back{{fill:#14171b}}}}\
             </style>\n<rect class=\"back\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
             <clipPath id=\"c\"><rect x=\"{LEFT}\" y=\"{ABOVE}\" width=\"{}\" height=\"{}\"/></clipPath>\n",
            WIDTH - LEFT - RIGHT + 4.0,
            HEIGHT - BELOW - ABOVE + 4.0
        );
        let mut line = |text: String| _ = writeln!(svg, "{text}");
        line(format!("<text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>", self.title));
        for y in ticks(y0, y1) {
            let py = at_y(y);
            line(format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{py:.1}\" y2=\"{py:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                py + 4.0,
                short(y)
            ));
        }
        for x in ticks(x0, x1) {
            let (px, below) = (at_x(x), HEIGHT - BELOW + 18.0);
            line(format!("<text x=\"{px:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{}</text>", short(x)));
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        line(format!(
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 8.0,
            self.x
        ));
        line(format!(
            "<text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            HEIGHT / 2.0,
            self.y
        ));
        for (k, curve) in self.curves.iter().enumerate() {
            let color = COLORS[k % COLORS.len()];
            let dash = if k >= COLORS.len() / 2 { " stroke-dasharray=\"5 3\"" } else { "" };
            for part in curve.points.split(|point| point.1.is_none()) {
                let at: Vec<String> = part
                    .iter()
                    .filter_map(|&(x, y)| Some(format!("{:.1},{:.1}", at_x(x), at_y(y?))))
                    .collect();
                line(format!(
                    "<polyline clip-path=\"url(#c)\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.8\"{dash} \
                     points=\"{}\"/>",
                    at.join(" ")
                ));
                for at in at.iter().filter_map(|at| at.split_once(',')) {
                    let (x, y) = at;
                    line(format!(
                        "<circle clip-path=\"url(#c)\" cx=\"{x}\" cy=\"{y}\" r=\"2.6\" fill=\"{color}\"/>"
                    ));
                }
            }
            let (x, y) = (WIDTH - RIGHT + 14.0, ABOVE + 8.0 + 19.0 * k as f64);
            line(format!(
                "<line x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{color}\" \
                 stroke-width=\"2.4\"{dash}/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 22.0,
                x + 28.0,
                y + 4.0,
                curve.name
            ));
        }
        svg + "</svg>\n"
    }
}

/// A step that is 1, 2 or 5 times a power of ten, of which four to ten make the span.
fn round_step(span: f64) -> f64 {
    // Without logarithms, whose last bits differ between machines.
    let mut power = 1.0;
    while power * 10.0 <= span / 4.0 {
        power *= 10.0;
    }
    while power > span / 4.0 && power > 1e-9 {
        power /= 10.0;
    }
    [5.0, 2.0, 1.0].into_iter().map(|times| times * power).find(|step| span / step >= 4.0).unwrap_or(power)
}

/// The multiples of such a step from one number to the other.
fn ticks(from: f64, to: f64) -> impl Iterator<Item = f64> {
    let step = round_step(to - from);
    let (first, last) = ((from / step - 1e-9).ceil() as i64, (to / step + 1e-9).floor() as i64);
    (first..=last).map(move |k| k as f64 * step)
}

/// A number without zeros that say nothing.
fn short(value: f64) -> String {
    let digits = if value.abs() >= 100.0 { 0 } else { 2 };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_stay_in_their_frame_and_have_gaps() {
        let curve =
            Curve { name: "a".to_owned(), points: vec![(0.0, Some(1.0)), (1.0, None), (2.0, Some(3.0))] };
        let plot = Plot {
            name: "n".to_owned(),
            title: "T".to_owned(),
            x: "x",
            y: "y",
            top: None,
            curves: vec![curve],
        };
        let svg = plot.svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("points=\"64.0,332.0\"") && svg.contains("points=\"610.0,34.0\""), "{svg}");
        let at = |from, to| ticks(from, to).collect::<Vec<f64>>();
        assert_eq!(at(0.0, 90.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(at(64.0, 1650.0), [200.0, 400.0, 600.0, 800.0, 1000.0, 1200.0, 1400.0, 1600.0]);
        assert_eq!(at(1.0, 3.0), [1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!([short(1.5), short(2.0), short(1234.6)], ["1.5", "2", "1235"]);
    }
}
