//! `/plans`: the configured plans as a public page.

use std::fmt::Display;

use actix_web::{
    HttpResponse,
    http::header::{self, HeaderName, HeaderValue},
    web,
};
use bytesize::ByteSize;

use super::{
    docs,
    html::{Html, grouped},
    page_frame::Frame,
};
use crate::{
    application::{context::Platform, error::ApiError},
    config::Plan,
};

const NARROW_SPACE: char = '\u{202f}';
const NO_BREAK_SPACE: &str = "\u{a0}";

/// The plans
///
/// A page with the limits of every plan, as the settings have them.
#[utoipa::path(get, path = "/plans", tag = "pages", security(()), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
))]
pub async fn show(platform: web::Data<Platform>) -> Result<HttpResponse, ApiError> {
    let plans = platform.config.plans_by_size();
    let html = Frame::named("plans.html")?.fill("Plans", main(&plans));
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((
            HeaderName::from_static("content-security-policy"),
            HeaderValue::from_static(docs::PAGE_POLICY),
        ))
        .body(html))
}

fn main(plans: &[(&String, &Plan)]) -> Html {
    let mut html = Html::default();
    html.put(
        "<header class=\"plans-head\"><h1>Plans</h1>\
         <p>What one account of this service may use. A month is a calendar month in UTC.</p></header>\
         <div class=\"plans\">",
        &[],
    );
    for (name, plan) in plans {
        html.put(
            "<section class=\"plan\"><h2>{}</h2><dl>",
            &[&capitalised(name)],
        );
        for (what, amount) in limits(plan) {
            html.put(
                "<div><dt>{}</dt><dd>{}</dd></div>",
                &[&what as &dyn Display, &amount],
            );
        }
        html.put("</dl></section>", &[]);
    }
    html.put(
        "</div><div class=\"plans-foot\">\
         <p>One media operation is one file that is converted, compressed or worked on by a tool, or one run of a workflow. What is \
         rejected or fails is not counted.</p>\
         <p>What an account has used: <code>GET /api/usage</code>. To change its plan, ask the operator of this service.</p></div>",
        &[],
    );
    html
}

fn limits(plan: &Plan) -> [(&'static str, String); 7] {
    [
        ("Media operations a month", count(plan.operations_per_month)),
        ("Image deliveries a month", count(plan.deliveries_per_month)),
        ("Requests a minute", count(plan.requests_per_minute.into())),
        ("Files at once", count(plan.files_per_batch.into())),
        ("Largest image", size(plan.image_upload)),
        ("Largest video or audio", size(plan.video_upload)),
        ("Storage", size(plan.storage)),
    ]
}

/// Writes a count in groups of three digits; 0 is no bound.
fn count(count: u64) -> String {
    if count == 0 {
        return "unlimited".to_owned();
    }
    grouped(count, NARROW_SPACE)
}

/// Writes a size as the settings do; 0 is no bound but the disk.
fn size(size: ByteSize) -> String {
    match size.as_u64() {
        0 => "unlimited".to_owned(),
        _ => {
            let text = size.display().si().to_string();
            text.replace(".0 ", " ").replace(' ', NO_BREAK_SPACE)
        }
    }
}

fn capitalised(name: &str) -> String {
    let mut characters = name.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_for_people() {
        let counts = [0, 5, 500, 5_000, 50_000, 5_000_000].map(count);
        let expected = [
            "unlimited",
            "5",
            "500",
            "5\u{202f}000",
            "50\u{202f}000",
            "5\u{202f}000\u{202f}000",
        ];
        assert_eq!(counts, expected);
        let sizes = [0, 1_500, 50_000_000, 2_000_000_000].map(|bytes| size(ByteSize(bytes)));
        let expected = ["unlimited", "1.5\u{a0}kB", "50\u{a0}MB", "2\u{a0}GB"];
        assert_eq!(sizes, expected);
    }

    #[test]
    fn a_plan_may_have_any_name() {
        let (name, plan) = ("<b>house & home".to_owned(), Plan::default());
        let html = main(&[(&name, &plan)]).into_string();
        assert!(
            html.contains("<h2>&lt;b&gt;house &amp; home</h2>"),
            "{html}"
        );
    }
}
