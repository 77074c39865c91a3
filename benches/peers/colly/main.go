// colly in the race: every link of every page, robots.txt obeyed, several requests at a time.
//
//	colly SEED
package main

import (
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gocolly/colly/v2"
)

func main() {
	crawler := colly.NewCollector(colly.Async(true))
	crawler.IgnoreRobotsTxt = false
	crawler.WithTransport(&http.Transport{
		DialContext:         (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		MaxIdleConns:        2000,
		MaxIdleConnsPerHost: 8,
		ForceAttemptHTTP2:   true,
	})
	if err := crawler.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 32}); err != nil {
		panic(err)
	}
	crawler.OnHTML("a[href]", func(link *colly.HTMLElement) {
		_ = link.Request.Visit(link.Attr("href"))
	})
	if err := crawler.Visit(os.Args[1]); err != nil {
		panic(err)
	}
	crawler.Wait()
}
