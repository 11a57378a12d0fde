//! Page templates that `web/` builds with a title and a `<main>` to be filled, so that they name styles and scripts by their
//! hashes.

use super::{embedded, html::Html};
use crate::application::error::ApiError;

/// Placeholder of the title.
const TITLE: &str = "<!--title-->";
/// Placeholder of the inside of `<main>`.
const MAIN: &str = "<!--main-->";

/// A page around what it shows.
#[derive(Debug)]
pub struct Frame {
    page: String,
}

impl Frame {
    /// Loads the page of that name in `web/pages`.
    pub fn named(name: &str) -> Result<Self, ApiError> {
        embedded::frame(name)
            .filter(|page| page.contains(TITLE) && page.contains(MAIN))
            .map(|page| Self { page })
            .ok_or_else(|| ApiError::internal(format!("{name} was not built into this program")))
    }

    /// The page with this title and this inside of `<main>`.
    pub fn fill(&self, title: &str, main: Html) -> String {
        let mut escaped = Html::default();
        escaped.put("{}", &[&title]);
        let (head, rest) = self.page.split_once(TITLE).unwrap_or((&self.page, ""));
        let (middle, tail) = rest.split_once(MAIN).unwrap_or((rest, ""));
        [
            head,
            &escaped.into_string(),
            middle,
            &main.into_string(),
            tail,
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_not_filled_again() {
        let page = "<title><!--title--></title><main><!--main--></main>".to_owned();
        let mut main = Html::default();
        main.put("<p>{}</p>", &[&"<!--main-->"]);
        assert_eq!(
            Frame { page }.fill("<!--main--> & more", main),
            "<title>&lt;!--main--&gt; &amp; more</title><main><p>&lt;!--main--&gt;</p></main>"
        );
    }
}
