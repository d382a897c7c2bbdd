//! The pages of the shop.
use std::sync::Mutex;

/// What is for sale.
pub struct Item {
    name: String,
    cents: u64,
}

/// The shop's goods, and what its visitors have looked at.
pub struct Shop {
    items: Vec<Item>,
    history: Mutex<Vec<String>>,
}

#[cfg(feature = "fixed")]
const HISTORY_MOST: usize = 100;

impl Shop {
    /// A shop with this many goods.
    pub fn new(count: u64) -> Shop {
        let item = |number| Item { name: format!("item number {number}"), cents: number * 7919 % 10_000 };
        Shop { items: (0..count).map(item).collect(), history: Mutex::new(Vec::new()) }
    }

    /// The body of a page; `None`: there is no such page.
    pub fn answer(&self, path: &str) -> Option<String> {
        let (page, rest) = path.trim_start_matches('/').split_once('/').unwrap_or((&path[1..], ""));
        match page {
            "health" => Some("ok\n".to_string()),
            "view" => Some(self.view(rest.parse().ok()?)),
            "quote" => Some(self.quote(rest.parse().ok()?)),
            "search" => Some(format!("{} found\n", self.search(rest))),
            "receipt" => Some(self.receipt(rest.parse().ok()?)),
            _ => None,
        }
    }

    /// The price of an item. Remembers the visit: for ever, and that is the mistake.
    fn view(&self, number: usize) -> String {
        let item = &self.items[number % self.items.len()];
        let mut history = self.history.lock().unwrap();
        history.push(format!("{} seen, at {} cents", item.name, item.cents));
        #[cfg(feature = "fixed")]
        if history.len() > HISTORY_MOST {
            history.remove(0);
        }
        format!("{} costs {} cents\n", item.name, item.cents)
    }

    /// A quote for ten of an item. The mistake: the quote is made immortal, and then forgotten.
    fn quote(&self, number: usize) -> String {
        let item = &self.items[number % self.items.len()];
        let quote = Quote::new(item);
        #[cfg(not(feature = "fixed"))]
        let quote: &'static Quote = Box::leak(quote);
        format!("ten of {} cost {} cents, {} less\n", item.name, quote.cents, quote.saved)
    }

    /// The number of items whose names contain the text. The mistake: each name is copied for each
    /// comparison.
    pub fn search(&self, text: &str) -> usize {
        self.items.iter().filter(|item| matches(&item.name, text)).count()
    }

    /// A receipt. The mistake: 64 KiB for forty bytes.
    fn receipt(&self, number: usize) -> String {
        let mut text = String::with_capacity(if cfg!(feature = "fixed") { 64 } else { 64 * 1024 });
        let item = &self.items[number % self.items.len()];
        text.push_str(&item.name);
        text.push_str(": paid\n");
        text
    }
}

struct Quote {
    cents: u64,
    saved: u64,
}

impl Quote {
    #[inline(never)]
    fn new(item: &Item) -> Box<Quote> {
        Box::new(Quote { cents: item.cents * 9, saved: item.cents })
    }
}

#[inline(never)]
fn matches(name: &str, text: &str) -> bool {
    if cfg!(feature = "fixed") {
        name.contains(text)
    } else {
        name.to_uppercase().contains(&text.to_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::Shop;

    #[test]
    fn pages() {
        let shop = Shop::new(10);
        assert_eq!(shop.answer("/view/3").as_deref(), Some("item number 3 costs 3757 cents\n"));
        assert_eq!(
            shop.answer("/quote/1").as_deref(),
            Some("ten of item number 1 cost 71271 cents, 7919 less\n")
        );
        assert_eq!(shop.answer("/search/7").as_deref(), Some("1 found\n"));
        assert_eq!(shop.answer("/receipt/2").as_deref(), Some("item number 2: paid\n"));
        assert_eq!(shop.answer("/nothing"), None);
    }
}
