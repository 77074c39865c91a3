//! spider in the race: every link of every page, robots.txt obeyed as far as it does, pages into a WARC of its own.
//!
//!     spider SEED WARC

use spider::utils::warc::WarcConfig;
use spider::website::Website;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut website = Website::new(&arguments[1]);
    website
        .with_respect_robots_txt(true)
        .with_external_domains(Some(std::iter::once("*".to_string())))
        .with_delay(0);
    website.configuration.with_warc(WarcConfig {
        path: arguments[2].clone(),
        ..WarcConfig::default()
    });
    website.crawl().await;
}
