from service import MyService
from tessera.testing import call_sync


def test_counts_words_and_no_punctuation() -> None:
    assert call_sync(MyService.count, text="The moon, pulls the sea!") == 5


def test_counts_the_words_of_each_text() -> None:
    assert call_sync(MyService.count_all, texts=["one", "one two"]) == [1, 2]
